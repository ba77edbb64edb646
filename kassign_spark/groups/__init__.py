"""From rows of members, topics and claims to arrays of many groups, which kernels work on."""
