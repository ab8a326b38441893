"""The table of mutants: every guard, what takes it away, and the tests that are to notice."""

from __future__ import annotations

from tests.mutants.demo import DEMO
from tests.mutants.effects import EFFECTS
from tests.mutants.fences_files import FENCES_FILES
from tests.mutants.fences_http import FENCES_HTTP
from tests.mutants.fences_outbox import OUTBOX
from tests.mutants.fences_redis import FENCES_REDIS
from tests.mutants.fences_s3 import S3_FENCE
from tests.mutants.fences_sql import FENCES_SQL
from tests.mutants.judge import JUDGE
from tests.mutants.mutant import Mutant
from tests.mutants.plugin import PLUGIN
from tests.mutants.postgres import POSTGRES
from tests.mutants.prove import PROVE
from tests.mutants.sqlite import SQLITE
from tests.mutants.stores import MEMORY, SHARED
from tests.mutants.worker import HOLDING, WORKER

STORES = (*SQLITE, *POSTGRES, *MEMORY, *SHARED)
WORKING = (*HOLDING, *WORKER, *EFFECTS)
DESTINATIONS = (*FENCES_SQL, *FENCES_REDIS, *FENCES_HTTP, *S3_FENCE, *FENCES_FILES, *OUTBOX)
PROOF = (*JUDGE, *PROVE, *PLUGIN, *DEMO)

MUTANTS: tuple[Mutant, ...] = (*STORES, *WORKING, *DESTINATIONS, *PROOF)
