#!/usr/bin/env python3
"""The weather service: on a port of its own, whose address is its first line of output. Every third request fails.

It is no function: the runner starts it beside the worker. It writes what it answered to service.log.
"""
import http.server
import json
import urllib.parse

CELSIUS = {"Oslo": 4, "Paris": 12, "Quito": 15, "Rome": 19, "Seoul": 9}


class Service(http.server.BaseHTTPRequestHandler):
    requests = 0

    def do_GET(self):
        Service.requests += 1
        city = urllib.parse.unquote(self.path.strip("/"))
        if Service.requests % 3 == 0:
            self.answer(503, {"error": "busy"}, city)
        elif city not in CELSIUS:
            self.answer(404, {"error": "no such city"}, city)
        else:
            self.answer(200, {"city": city, "celsius": CELSIUS[city]}, city)

    def answer(self, status, body, city):
        with open("service.log", "a") as log:
            print(status, city, file=log)
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


server = http.server.HTTPServer(("127.0.0.1", 0), Service)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
