// Package connections decides how many connections send, and which one is next. A worker gets a [Slot] of
// a [Pool] before it sends. The tuner of a pool adds slots as long as the rate rises. A [Link] knows the rate of
// one connection. The package does not know what the workers send: a file is a [Share], and a part
// is an [atrisk.Risk].
package connections
