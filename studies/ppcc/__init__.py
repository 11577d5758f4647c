"""Study of the paper on TCP-PPCC: learned congestion windows beside NewReno, QTCP and others; Table III, Figures 4 and 5."""
