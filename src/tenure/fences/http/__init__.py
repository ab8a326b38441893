"""HTTP as a destination: a client that sends the token along, and a service that refuses what is late (D5).

| module            | for                                                                                      |
|-------------------|------------------------------------------------------------------------------------------|
| `client_httpx`    | clients with httpx: `FencedTransport`, `fenced`, `is_repeat`                             |
| `client_requests` | clients with requests: `FencedAdapter`, `fenced`, `is_repeat`                            |
| `fence`           | `HTTPFence`, which raises the fence of a service                                         |
| `service`         | `FencedService`: fence, stored answer and effect in one transaction of the service's own |
| `starlette`, `flask`, `django` | decorators that do so for an endpoint                                       |
| `asgi`, `wsgi`    | `FenceResource`, where a service has its fences raised; `BoundedBody` for ASGI           |
| `middleware`      | what only checks, then acts, and says so                                                 |
| `headers`, `problems` | what goes over the wire                                                              |

Importing this package imports no HTTP library and no framework.
"""

from tenure.fences.http.fence import HTTPFence
from tenure.fences.http.headers import fencing_headers, read_headers
from tenure.fences.http.messages import Answer, RequestFacts
from tenure.fences.http.service import Call, FencedService

__all__ = ["Answer", "Call", "FencedService", "HTTPFence", "RequestFacts", "fencing_headers", "read_headers"]
