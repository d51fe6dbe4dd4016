// Package netconn has connections that send the bytes of a request body from the memory
// of the body.
//
// net/http copies a body through a buffer of 32 KiB, and writes each of these pieces to the
// connection. If a connection has a ReadFrom, as [Conn] has, net/http calls that instead.
package netconn
