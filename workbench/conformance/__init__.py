"""Does a plugin keep the contract of its group? For its author, and for who installs it.

Every check runs in a process of its own under a time limit: a part that hangs, exits or eats the
memory fails its check and nothing else.

=============  ===================================================================================
module         what
=============  ===================================================================================
`models`       checks of a profile model (`workbench.models.base.ProfileModel`)
`samplers`     checks of a sampler (`workbench.sampling.base.Sampler`)
`running`      which parts a package brings, and their checks
=============  ===================================================================================
"""
