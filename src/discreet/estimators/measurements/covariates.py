"""Rounds through the gate about covariates: how each is distributed, and the second moments of their features.

Each turns a share of the budget into public numbers. Diameters: docs/proofs/ate.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import Any

import numpy as np

from discreet.data._arrays import Float
from discreet.data.records import Chunk
from discreet.estimators._allocation import WINDOWS
from discreet.estimators.measurements.coded_features import CodedFeatures
from discreet.estimators.measurements.location import Location
from discreet.postprocessing.coding import CellFinder, Coding, Column, code_numbers, coding, finer_edges, first_edges
from discreet.postprocessing.feature_selection import FeatureSelection, screened
from discreet.postprocessing.kernel_basis import NORM_CAP, CodedBasis, Curves
from discreet.postprocessing.reference_population import Reference, SteadyGram, latent_correlation, weighted_gram
from discreet.privacy.compiled.products import Products
from discreet.privacy.gate import Gate
from discreet.privacy.query import Query
from discreet.privacy.sensitivity.sets import Ball, Cells, Gram

# Functions of each covariate that screening looks at: so many for the root of n mu, at least and at most, and so many
# of all covariates, which bounds memory. By hand, of this and fewer, on the same studies of evidence/population as the
# weight of what it finds.
_SCREENED_RATE, _SCREENED, _SCREENED_IN_ALL = 0.1, (2, 24), 1_200


@dataclass(frozen=True, eq=False)
class Setting:
    """What all later rounds share: the features and what is known of their distribution."""

    features: CodedFeatures
    reference: Reference
    gram: SteadyGram

    @property
    def basis(self) -> CodedBasis:
        """What the features are."""
        return self.features.basis

    def with_features(self, basis: CodedBasis) -> Setting:
        """The same points with other features of their codes, whose second moments nobody released."""
        reference = self.reference.with_features(basis)
        return Setting(CodedFeatures(basis, self.features.n), reference, SteadyGram.implied(reference))

    @property
    def size(self) -> Float:
        """Mean square of each feature."""
        return np.diag(self.second)

    def slope(self, selection: FeatureSelection, varies: Float) -> Float:
        """Derivative of selected moments by the coefficients of all features; ``varies`` weighs the reference's points.

        Where the records' second moments are known to differ from the reference's, it is moved.
        """
        return self._slope(selection, varies, *selection(self.reference.features))

    def slope_and_square(self, selection: FeatureSelection, varies: Float) -> tuple[Float, Float]:
        """The same, and second moments of selected and weighted features."""
        psi, weight = selection(self.reference.features)
        return self._slope(selection, varies, psi, weight), weighted_gram(psi, weight**2 * varies) / len(psi)

    def _slope(self, selection: FeatureSelection, varies: Float, psi: Float, weight: Float) -> Float:
        features, linear = self.reference.features, selection.linear(self.basis.m)
        if 2 * selection.m > self.basis.m:
            # A matrix by itself takes half the time of one by another.
            slope = linear.T @ weighted_gram(features, weight * varies) / len(psi)
        else:
            slope = (psi * (weight * varies)[:, None]).T @ features / len(psi)
        return np.asarray(slope + float(np.mean(varies)) * linear.T @ self.gram.apart)

    def weighted(self, h: Float) -> Float:
        """Second moments of the features where points of the reference count with weights of any size."""
        plain = float(h.min()) == float(h.max())
        return self.second if plain else weighted_gram(self.reference.features, h / float(h.sum()))

    @cached_property
    def second(self) -> Float:
        """Second moments of the features on the reference, no point weighted down."""
        return np.asarray(self.reference.features.T @ self.reference.features / len(self.reference.weight))


def measure_gram(gate: Gate, share: float, features: CodedFeatures, correlation: Float, *beside: Query) -> Setting:
    """Second moments of the features, and a public sample whose correlations are known beside them.

    The same pass prepares what is asked ``beside`` them later.
    """

    def rows(c: Chunk) -> Float | Products:
        return features.times(c, np.sqrt(features.weights(c)))

    question = Query("second moments", share, Gram(features.basis.radius, features.basis.m), rows)
    gate.prepare(question, *beside)
    (gram,) = gate.ask(question)
    reference = Reference.of_codes(features.basis, correlation)
    steady = SteadyGram.of(gram.value / gate.n, float(gram.sd) / gate.n, reference, features.basis)
    return Setting(features, reference, steady)


def coding_questions(columns: tuple[Column, ...], share: float) -> tuple[Query, ...]:
    """What `measure_codings` asks first: it depends on no release, and can be prepared in the first pass."""
    return (_histograms("marginals", share, [first_edges(column) for column in columns]),) if columns else ()


def measure_codings(gate: Gate, questions: tuple[Query, ...], share: float) -> tuple[Coding, ...]:
    """Marginals in equal cells, then in cells that follow the records, and the codes that these give."""
    columns = gate.bounds.columns
    edges = [first_edges(column) for column in columns]
    fractions, sd = _shares(gate, edges, *questions)
    finer = [finer_edges(*each, sd) for each in zip(columns, edges, fractions, strict=True)]
    again, noise = _shares(gate, finer, _histograms("marginals within windows", share, finer))
    return tuple(coding(*each, noise) for each in zip(columns, finer, again, strict=True))


def _histograms(name: str, share: float, edges: list[Float]) -> Query:
    sizes = tuple(len(own) + 1 for own in edges)
    finders = [CellFinder(own) for own in edges]
    return Query(name, WINDOWS[name] * share, Cells(sizes), lambda c: code_numbers(c.x, finders))


def _shares(gate: Gate, edges: list[Float], question: Query) -> tuple[list[Float], float]:
    (counts,) = gate.ask(question)
    ends = np.cumsum([len(own) + 1 for own in edges])[:-1]
    return np.split(counts.value / gate.n, ends), float(counts.sd) / gate.n


def screened_functions(gate: Gate, p: int) -> int:
    """How many functions of each of so many covariates are looked at first: the more, the more information there is."""
    low, high = _SCREENED
    return int(max(min(_SCREENED_RATE * sqrt(gate.n * gate.mu), high, _SCREENED_IN_ALL / p), low))


def measure_curves(
    gate: Gate, share: float, codings: tuple[Coding, ...], location: Location
) -> tuple[Float, tuple[Curves, ...]]:
    """How much each covariate seems to say about treatment and outcome, and functions that follow what it says.

    By moments of every covariate's first functions: the more of them, the more information there is.
    """
    features = CodedFeatures(CodedBasis.of_singles(codings, screened_functions(gate, len(codings))), gate.n)
    basis, scale = features.basis, location.scale
    clip, treated = min(max(2.5 * scale, location.least_clip), location.farthest), location.treated
    reach = max(treated, 1.0 - treated)

    def rows(c: Chunk) -> Float | Products:
        weight = features.weights(c)
        outcome = np.clip(c.y - location.centre, -clip, clip) / clip
        return features.times(c, (c.t - treated) / reach * weight, outcome * weight)

    query = Query("screening moments", share, Ball(2.0**0.5 * basis.radius, 2 * basis.m), rows)
    (moments,) = gate.ask(query)
    varies = np.array([[treated * (1.0 - treated) / reach**2], [(scale / clip) ** 2]])
    noise = (float(moments.sd) / gate.n / basis.weight) ** 2 + varies / gate.n
    return screened(basis, moments.value.reshape(2, basis.m) / gate.n / basis.weight, noise)


def measure_correlation(gate: Gate, share: float, codings: tuple[Coding, ...]) -> Float:
    """Correlations behind the codes, by second moments of each covariate's first function."""
    p = len(codings)
    if p < 2:
        return np.eye(p)
    basis = CodedBasis.of_singles(codings, 1)
    radius = float(np.sqrt(NORM_CAP * max(p, 2)))

    def codes_of(c: Chunk) -> Any:
        return basis.codes(c.x) if c.c is None else c.c

    def rows(c: Chunk) -> Float:
        own, square = np.zeros((len(c.t), p), order="F"), np.zeros(len(c.t))
        for j, (codes, curves) in enumerate(zip(codes_of(c), basis.curves, strict=True)):
            if len(curves.variance):
                own[:, j] = curves.table[:, 0].take(codes)
                square += own[:, j] * own[:, j]
        own *= np.minimum(1.0, radius / np.sqrt(np.maximum(square, 1e-12)))[:, None]
        return own

    (gram,) = gate.ask(Query("correlations", share, Gram(radius, p), rows))
    return latent_correlation(basis, gram.value / gate.n, float(gram.sd) / gate.n)
