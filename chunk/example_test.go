package chunk_test

import (
	"fmt"
	"io"
	"strings"

	"gcsup/chunk"
)

// This example sends a file of a million bytes in two requests. The first one
// ends at the last boundary. The second one has the tail and the checksum of
// the whole file.
func Example() {
	content := strings.Repeat("0123456789", 100_000)
	src := chunk.FromReaderAt(strings.NewReader(content), int64(len(content)))
	sum := chunk.NewPrefixCRC(chunk.Checkpoint{})

	tail := chunk.LastBoundary(src.Size())
	for _, r := range []chunk.Range{{From: 0, To: tail}, {From: tail, To: src.Size()}} {
		body := src.Body(r, sum)
		n, err := io.Copy(io.Discard, body) // a program would send it
		body.Close()
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("bytes %d-%d/%d: %d bytes\n", r.From, r.To-1, src.Size(), n)
	}
	fmt.Printf("CRC32C of the file: %08x\n", sum.Sum())
	// Output:
	// bytes 0-786431/1000000: 786432 bytes
	// bytes 786432-999999/1000000: 213568 bytes
	// CRC32C of the file: b69a6a67
}

// In this example the server commits less than was sent. The next body starts
// at the committed offset, and hashes the bytes since the boundary before it
// again.
func ExamplePrefixCRC_Rewind() {
	content := strings.Repeat("0123456789", 100_000)
	src := chunk.FromReaderAt(strings.NewReader(content), int64(len(content)))
	sum := chunk.NewPrefixCRC(chunk.Checkpoint{})

	body := src.Body(chunk.Range{From: 0, To: src.Size()}, sum)
	io.Copy(io.Discard, body)
	body.Close()

	const committed = 700_000
	fmt.Println("back at", sum.Rewind(committed).Offset)
	body = src.Body(chunk.Range{From: committed, To: src.Size()}, sum)
	n, err := io.Copy(io.Discard, body)
	body.Close()
	fmt.Println("sent again:", n, err)
	fmt.Printf("CRC32C: %08x\n", sum.Sum())
	// Output:
	// back at 524288
	// sent again: 300000 <nil>
	// CRC32C: b69a6a67
}
