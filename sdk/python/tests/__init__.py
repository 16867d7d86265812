"""Tests of the SDK, against the real server and against servers that are scripted."""

import faulthandler

# Every wait of these tests has a bound. Should one have been forgotten, this says where it hangs before ctest ends the whole.
faulthandler.dump_traceback_later(240)
