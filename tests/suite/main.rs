//! Every test that looks at Windlass from outside, in one binary: it is linked once.
