package stream_test

import (
	"context"
	"fmt"
	"strings"

	"gcsup/chunk"
	"gcsup/internal/checksum"
	"gcsup/upload/internal/stream"
)

// This example splits a stream into windows. The last part is not empty.
func ExampleStream() {
	stdin := strings.NewReader(strings.Repeat("x", 2*chunk.Granularity))
	s, err := new(stream.Memory).NewStream(stdin, chunk.Granularity)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	for {
		part, err := s.Next(context.Background())
		if err != nil {
			fmt.Println(err)
			return
		}
		// Send part.Reader(part.From, part.To). Send it again from the committed
		// offset if necessary.
		fmt.Println(part.Range, "last:", part.Last, "crc32c:", checksum.Encode(part.CRC32C))
		s.Release()
		if part.Last {
			return
		}
	}
	// Output:
	// [0,262144) last: false crc32c: IqXLaA==
	// [262144,524288) last: true crc32c: ZX2+eA==
}
