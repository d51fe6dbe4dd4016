// Package deptest has only tests. They check which packages each package of this
// module may import and link, and that package upload leaves the decisions about replies
// to package session.
package deptest
