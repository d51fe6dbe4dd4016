// Package layers has no code. Its test holds the import arrows between the
// packages of this module, and what each may link.
package layers
