"""Which proved configurations the audit replays on every commit; a guarantee names the version that covers its own.

The matrix itself is `discreet.audit.matrix`; a test compares it with this table.
"""

AUDIT_VERSION = 1
"""Goes up when instruments, neighbours or the matrix change so that older results no longer say the same."""

# File of the proof, relation, noise.
COVERED = frozenset(
    {
        *(
            (proof, relation, noise)
            for proof, noises in {
                "ate.md": ("gaussian", "laplace"),
                "cate.md": ("gaussian",),
                "uplift.md": ("gaussian", "laplace"),
                "adum.md": ("laplace",),
            }.items()
            for relation in ("replace-one", "add-remove")
            for noise in noises
        ),
        *(
            (proof, "replace-one", "gaussian")
            for proof in ("propensity.md", "learners.md", "private_ci.md", "dp_cate.md")
        ),
    }
)


def audit_of(proof: str, relation: str, *, pure: bool) -> int | None:
    """Version of the audit that covers releases with this proof, relation and noise; None if none does."""
    noise = "laplace" if pure else "gaussian"
    covered = all((name, relation, noise) in COVERED for name in proof.split(", "))
    return AUDIT_VERSION if covered else None
