"""Learning from bags of images, by many methods under one protocol: same net, bags and budget."""
