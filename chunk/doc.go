// Package chunk holds the bytes of an upload: the 256 KiB arithmetic of
// resumable uploads, sources that can be read again, a window over a stream
// that cannot, and the CRC32C that Cloud Storage checks objects with.
//
// # Content that can be read again
//
// [Open] a file (or wrap an [io.ReaderAt] with [FromReaderAt]) and give each
// request its [Source.Body]:
//
//	src, err := chunk.Open("disk.img")
//	sum := chunk.NewRunning(chunk.Checkpoint{})
//	body := src.Body(chunk.Range{From: 0, To: src.Size()}, sum)
//	defer body.Close()
//
// The body reads ahead and hashes each byte once, so that disk, checksum and
// network work at the same time. When the server kept less than was sent,
// step back with [Running.Rewind] and ask for the next body: the bytes that
// are sent again are held against the checksums of the first time, and a file
// that was edited in between is reported as [ErrChanged] instead of being sent.
//
// [Source.Settle], called before the first byte is read, makes sure that every
// later change of the file changes its [Identity], or says why that is not so.
//
// # Content that cannot
//
// [NewStream] wraps standard input or any other [io.Reader]. [Stream.Next]
// gives one window at a time, which stays in memory until [Stream.Release]
// says that the server has committed it.
//
// # Guarantees
//
//   - Memory is bounded: three buffers of 1 MiB per body, two windows per
//     stream, four bytes per 256 KiB in a [Running] since its last
//     [Running.Forget].
//   - One goroutine per [Body] or [Stream] reads the source. It ends with Close,
//     and that of a stream before Close returns.
//   - A source that is shorter than it was, or gives other bytes than it gave
//     before, is an error that wraps [ErrChanged]. A source that cannot be read
//     is an error that wraps [ErrRead]. No part of a stream is marked last
//     after an error.
package chunk
