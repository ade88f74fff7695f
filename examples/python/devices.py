"""A table of the devices of this machine."""
import prismrt as prism

for device in prism.devices():
    kind = "CPU" if device.is_cpu else "software" if device.is_software else "GPU"
    print(f"{device.id:12} {kind:9} {device.total_bytes / 2**30:6.1f} GB  {device.name}")
for report in prism.discover_backends():
    if not report.available:
        print(f"{report.name:12} {report.reason}")
best = prism.best_available_backend()
print(f"chosen: {best.id}, {best.why}")
