"""The paper on Auter, a tuner of a proxy's network buffers: its tables and figures as studies of one campaign."""
