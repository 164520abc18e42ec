"""Model files: reading, recognition, conversion, and export to ONNX."""
