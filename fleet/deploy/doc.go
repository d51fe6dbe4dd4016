// Package deploy has examples of fleets in Kubernetes and with systemd. Its test decodes
// them strictly. It is a module of its own, so that the fleet does not depend on the types of
// Kubernetes.
package deploy
