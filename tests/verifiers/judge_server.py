"""A chat endpoint on this machine that says what a test wants it to say."""

import contextlib
import http.server
import json
import threading


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """Callers that hang up are part of the tests."""


@contextlib.contextmanager
def serving(reply):
    """Serves `reply(messages, number of this call)` and yields (url, requests).

    A text becomes a completion with 10 prompt and 5 completion tokens; (status, bytes)
    or (status, bytes, headers) is sent as it is; a function gets the socket.
    """
    requests, lock = [], threading.Lock()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                requests.append(
                    {"path": self.path, "headers": dict(self.headers), **body}
                )
                number = len(requests)
            answer = reply(body["messages"], number)
            if callable(answer):
                answer(self)
                return
            if isinstance(answer, str):
                answer = (200, json.dumps(completion(answer)).encode())
            status, data, *headers = answer
            self.send_response(status)
            for name, value in headers[0].items() if headers else ():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *arguments):
            pass

    server = _Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1", requests
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def completion(text):
    return {
        "choices": [{"message": {"content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5},
    }
