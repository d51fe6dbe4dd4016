// Package spool keeps the bytes of a stream on disk until the service has committed them, so that
// another process can finish the upload.
//
// # Files
//
// Each stream has a directory of its own, with these files:
//
//	00000000000008388608-1a2b3c4d.bytes  the bytes of the stream from an offset; the CRC32C of the bytes before it
//	end.json                             the size and the CRC32C of the whole stream
//
// A segment, a file of bytes, is removed when the service has committed all of it. Its name has
// all that another process needs to continue the checksum there.
//
// # Durability
//
// A byte is in a file before the next one is read. It survives the process. It need not survive
// a power loss, because that also ends the writer of the stream, and a stream without its end is
// never published. When the input ends, all segments are written to the disk (fsync), then their names,
// and then end.json, which therefore proves that the stream is complete.
//
// # Types
//
//	Spool   the files of one stream, and how far they are filled. One goroutine, of Fill, adds to them
//	Source  the content of the object, for package engine
package spool
