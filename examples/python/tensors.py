"""Tensors and gradients: fits a line to points."""
import prismrt as prism

x = prism.linspace(-1, 1, 50)
y = 3 * x - 0.5 + 0.1 * prism.normal(50, key=1)
slope, offset = prism.tensor(0.0), prism.tensor(0.0)


@prism.compile
def step(slope, offset, x, y):
    loss = prism.value_and_grad(lambda a, b: (a * x + b - y).square().mean())
    value, (of_slope, of_offset) = loss(slope, offset)
    return value, slope - 0.3 * of_slope, offset - 0.3 * of_offset


for _ in range(100):
    loss, slope, offset = step(slope, offset, x, y)
print(f"y = {slope.item():.2f} x {offset.item():+.2f}, loss {loss.item():.4f}, on {x.device}")
