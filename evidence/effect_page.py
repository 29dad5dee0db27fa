"""The page about `CATE`."""
def lines(found): return [f"{c.name}: {(sum(r['mse'] for r in rows)/len(rows))**.5:.4f} ({len(rows)})" for c, rows in found.items()]
