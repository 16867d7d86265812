"""The target tenant: a directory of JSON files, which MAILBOX_STATE names. Not executable, so it is no function.

Functions may run more than once for the same job: each looks at what is there before it does something."""
import json
import os
import pathlib
import sys
import uuid

ROOT = pathlib.Path(os.environ["MAILBOX_STATE"])


def params():
    return json.load(sys.stdin)


def answer(value):
    json.dump(value, sys.stdout)


def fail(reason):
    sys.exit(reason)  # to standard error, and the exit code is 1


def id_of(upn):
    """The same for the same address, so that nothing is created twice."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, "mailto:" + upn))


def load(mailbox_id):
    """None when there is no such mailbox."""
    try:
        return json.loads((ROOT / f"{mailbox_id}.json").read_text())
    except FileNotFoundError:
        return None


def save(mailbox):
    file = ROOT / f"{mailbox['id']}.json"
    new = file.with_suffix(f".{os.getpid()}")
    new.write_text(json.dumps(mailbox))
    new.rename(file)


def remove(mailbox):
    (ROOT / f"{mailbox['id']}.json").unlink(missing_ok=True)


def note(text):
    """A line in the ledger of what was done."""
    with open(ROOT / "ledger.txt", "a") as ledger:
        print(text, file=ledger)


def create(kind):
    wanted = params()
    mailbox = load(id_of(wanted["Upn"]))
    if mailbox is None:
        mailbox = {"id": id_of(wanted["Upn"]), "upn": wanted["Upn"], "kind": kind, "group": wanted["Group"],
                   "aliases": wanted["Aliases"], "licence": None, "state": "created", "calls": 0}
        save(mailbox)
        note(f"created {kind.lower()} mailbox {wanted['Upn']} in {wanted['Group']}")
    answer({"id": mailbox["id"]})
