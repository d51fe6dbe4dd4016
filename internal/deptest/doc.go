// Package deptest has only tests. They check which packages each package of this
// module may import and link, that package upload leaves the decisions about replies
// to package session, and that there is a reason for each module that is required.
package deptest
