// Package badlink is a test network with real packets: two network namespaces, each with
// a TUN device, and a router between them in this process. The kernel's TCP is at both
// ends. The router delays, drops and reorders packets, and can drop all of them.
//
// The namespaces have no names. The kernel removes them, and their devices, when the last
// process in them ends, even after a SIGKILL of this one. Any number of networks can exist
// at the same time.
//
// [Open] needs Linux and root.
package badlink
