// Package deploy has examples of fleets in Kubernetes and with systemd, and tests of them. It is a
// separate module, so that the fleet module does not depend on the types of Kubernetes.
package deploy
