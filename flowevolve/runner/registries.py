"""The names that a configuration can use: what ships under each, and the entry-point groups that add to them."""

from __future__ import annotations

from collections.abc import Mapping

from flowevolve._util.registry import Registry
from flowevolve.core.algorithm import Algorithm
from flowevolve.core.policies import Allocation, NoRacing, Racing, StalenessPolicy
from flowevolve.core.task import Task
from flowevolve.llm.client.ensemble import Choice
from flowevolve.llm.scheduling.admission import Admission
from flowevolve.llm.scheduling.request_queue import Order
from flowevolve.policies.admission import Fixed, Latency, ServerQueue
from flowevolve.policies.allocation import MedianRate, Pressure
from flowevolve.policies.bandits import UCB
from flowevolve.policies.ordering import Fifo, LaterFirst
from flowevolve.policies.racing import Bound, Confidence, Prefix
from flowevolve.policies.staleness import Full, Guarded, Reflective

ALGORITHMS: Registry[Algorithm] = Registry(
    "algorithm",
    "flowevolve.algorithms",
    {
        "gepa": "flowevolve.algorithms.gepa:GEPA",
        "combee": "flowevolve.algorithms.combee:Combee",
        "ace": "flowevolve.algorithms.ace:ACE",
        "meta_harness": "flowevolve.algorithms.meta_harness:MetaHarness",
        "levi": "flowevolve.algorithms.levi:LEVI",
        "best_of_n": "flowevolve.algorithms.baselines:BestOfN",
        "one_plus_lambda": "flowevolve.algorithms.baselines:OnePlusLambda",
        "code_evolve": "flowevolve.algorithms.code_evolve:CodeEvolve",
        "context_evolve": "flowevolve.algorithms.context_evolve:ContextEvolve",
        "cse": "flowevolve.algorithms.cse:CSE",
    },
    Algorithm,
)
TASKS: Registry[Task] = Registry(
    "task",
    "flowevolve.tasks",
    {
        "house_style": "flowevolve.tasks.catalog:house_style",
        "instructions": "flowevolve.tasks.catalog:instructions",
        "multihop": "flowevolve.tasks.catalog:multihop",
        "math": "flowevolve.tasks.catalog:math",
        "classification": "flowevolve.tasks.catalog:classification",
        "finer": "flowevolve.tasks.catalog:finer",
        "formula": "flowevolve.tasks.catalog:formula",
        "harness": "flowevolve.tasks.catalog:harness",
    },
    Task,
    ("program",),
    {"program": "A program that solves a problem: one that ships (`flowevolve list problems`), or your own."},
)
STALENESS: Registry[StalenessPolicy] = Registry(
    "staleness policy",
    "flowevolve.policies.staleness",
    {"full": Full, "guarded": Guarded, "reflective": Reflective},
    StalenessPolicy,
)
ALLOCATION: Registry[Allocation] = Registry(
    "allocation policy",
    "flowevolve.policies.allocation",
    {"median_rate": MedianRate, "pressure": Pressure},
    Allocation,
    ("fixed",),
    {"fixed": "Every stage keeps the workers it has."},
)
RACING: Registry[Racing] = Registry(
    "racing policy",
    "flowevolve.policies.racing",
    {"off": NoRacing, "bound": Bound, "confidence": Confidence, "prefix": Prefix},
    Racing,
)
ORDERINGS: Registry[Order] = Registry(
    "ordering", "flowevolve.policies.ordering", {"later_first": LaterFirst, "fifo": Fifo}, Order
)
ADMISSIONS: Registry[Admission] = Registry(
    "admission policy",
    "flowevolve.policies.admission",
    {"fixed": Fixed, "server_queue": ServerQueue, "latency": Latency},
    Admission,
)
BANDITS: Registry[Choice] = Registry("bandit", "flowevolve.policies.bandits", {"ucb": UCB}, Choice)
POLICIES: Mapping[str, Registry[object]] = {
    "staleness": STALENESS,
    "racing": RACING,
    "allocation": ALLOCATION,
    "scheduler.order": ORDERINGS,
    "scheduler.admission": ADMISSIONS,
    "llm.roles.NAME.bandit": BANDITS,
}
"""The policies by where a configuration names them."""
