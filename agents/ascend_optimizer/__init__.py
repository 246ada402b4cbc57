"""AscendOptimizer (arXiv 2603.23566): tiling search and experience-guided kernel refinement."""
