"""Compiled kernels of the policies CLUB and RCLUMB: state, graph, components and rounds."""
