"""Columns of which nothing was declared, on a Spark cluster: the same suggestion as of a frame."""

from tests.data.backends.test_survey import frame, suggested


def test_spark_releases_the_same(spark):
    data = frame()
    rows = spark.createDataFrame(data.astype(object).where(data.notna(), None).values.tolist(), list(data.columns))
    assert suggested(rows) == suggested(data)
