"""What `flowevolve plan` foretells, beside what runs then took: twelve recorded runs that nothing was fitted on.

Each case is a configuration with a server. First a short run of it with another seed is recorded, where the case says
that lengths are measured. From this, the configuration and the name of a profile the plan is made. Then the run itself
is recorded, and what it took is compared with the plan's intervals. The server is not quite what the profile says: each
of its times differs by a factor drawn once for each case, as a measured profile differs from its server. Its answers
are longer or shorter than the profile says, too.
"""
