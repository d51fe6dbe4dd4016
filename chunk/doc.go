// Package chunk reads, splits and hashes the content of an upload. A [Source]
// is a file that can be read more than once. The checksum is CRC32C, with which Cloud Storage checks
// objects. The unit is the [Granularity] of 256 KiB.
//
// # Files
//
// Call [Open], or [FromReaderAt] for content in memory. Then call [Source.Body]
// for each request:
//
//	src, err := chunk.Open("disk.img")
//	sum := chunk.NewPrefixCRC(chunk.Checkpoint{})
//	body := src.Body(chunk.Range{From: 0, To: src.Size()}, sum)
//	defer body.Close()
//
// The body reads ahead and hashes while the network sends. If the service committed
// less than was sent, call [PrefixCRC.Rewind] with the committed offset and make the
// next body. The bytes that are sent again are compared with the checksums of the first
// pass. If the file was edited in between, the error wraps [ErrChanged], and no changed
// byte is sent.
//
// # Guarantees
//
//   - Memory is bounded: four buffers of 256 KiB per [Body], and four
//     bytes per 256 KiB hashed since the last [PrefixCRC.Forget].
//   - One goroutine per Body reads the source. It no longer reads when Close returns.
//
// # Errors
//
// If a source is shorter than before, or its bytes differ from those of the
// first pass, the error wraps [ErrChanged]. If a source cannot be read, the
// error wraps [ErrRead]. If it cannot be opened, the error of Open wraps [ErrOpen],
// or [ErrNotRegular] if it is not a regular file.
package chunk
