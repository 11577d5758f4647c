"""Tables and figures of the paper on Auter, a tuner of a proxy's network buffers, as the studies of one campaign."""
