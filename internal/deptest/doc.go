// Package deptest has only tests. They check which packages each package of this
// module may import and link.
package deptest
