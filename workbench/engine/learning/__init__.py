"""The worker process and what it computes: samplers told and asked, models fitted and scored."""
