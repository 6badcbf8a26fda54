"""A filter for noisy samples."""

# EVOLVE-BLOCK-START


def smooth(samples):
    """Replace each sample by a weighted mean of the samples around it."""
    reach = 12
    decay = 0.98
    smoothed = []
    for index in range(len(samples)):
        total = 0.0
        weights = 0.0
        for offset in range(-reach, reach + 1):
            place = index + offset
            if 0 <= place < len(samples):
                weight = decay ** abs(offset)
                total += weight * samples[place]
                weights += weight
        smoothed.append(total / weights)
    return smoothed


# EVOLVE-BLOCK-END
