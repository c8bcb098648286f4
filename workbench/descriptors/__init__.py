"""Text in, domain out, mistakes located: YAML for VNFs, chains, campaigns and metrics.

================  ==================================================================
module            what it does
================  ==================================================================
`units`           quantities with units: `10kB`, `25%`, `300/s`
`sla_text`        `p95<=200ms @ rate=300/s, filesize=10kB`
`document`        a YAML file as dicts and lists that know their lines and columns
`reading`         one file on its way through validation; its mistakes
`fields`          the kinds of values that descriptors are made of
`vnf` ...         one module per kind of descriptor: pydantic models and their checks
`library`         descriptors by name, from the workspace and from the shipped templates
`loading`         a campaign by name or path, resolved
`checking`        `workbench lint`
`schemas`         `workbench schema`
`capacity`        whether a campaign fits a host
================  ==================================================================
"""
