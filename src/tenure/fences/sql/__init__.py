"""`SQLFence`: a fence table in a SQL database, compared and moved inside the transaction of the effect (D2).

What holds: in one scope no write passes that is older than one before it, whatever happens to the data. Compare and
store are one step, and commit or roll back with the effect.

What does not: a write before the new owner has raised the fence, and committed, still passes (R32); writes that do not
pass the fence, of this program or another, are not seen; DDL and what leaves the database are outside the transaction.

What to configure: a transaction that was open when its owner was stopped holds the fence's row, and whoever comes next
waits for it. How long is the caller's own setting: `lock_timeout` (PostgreSQL), the `timeout` of `sqlite3.connect`,
`innodb_lock_wait_timeout` (MySQL).
"""

from tenure.fences.sql.bound import BoundSQLFence
from tenure.fences.sql.fence import SQLFence
from tenure.fences.sql.row import RowFence

__all__ = ["BoundSQLFence", "RowFence", "SQLFence"]
