"""Does a plugin keep the contract of its group? For its author, and for who installs it.

Every check runs in a process of its own under a time limit: a part that hangs, exits or eats the
memory fails its check and nothing else.

=========================  =======================================================================
module                     what
=========================  =======================================================================
`models`                   checks of a profile model (`workbench.models.base.ProfileModel`)
`samplers`                 checks of a sampler (`workbench.sampling.base.Sampler`)
`chain_rules`              checks of a rule of composition (`workbench.chains.base.ChainRule`)
`costs`                    checks of what an allocation costs (`workbench.sla.costs.Cost`)
`recommendation_exports`   checks of a format of recommendations
                           (`workbench.exports.recommendation.base.RecommendationExport`)
`running`                  which parts a package brings, and their checks
=========================  =======================================================================
"""
