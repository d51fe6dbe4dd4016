// Package clientcheck finds the faults of a resumable upload client. It runs the client once for
// each [Script]: a source, a server with a plan of faults, and one or two runs. The server's
// records then give a [Verdict]: whether the object is right, whether the client reported what
// happened, and whether it kept to the protocol. What the client sent in vain is reported, and is
// no fault.
//
// The scripts are data, and [Judge] is pure. [Run] has the server, the files and the time. The
// client is a command ([Command]) or a function.
package clientcheck
