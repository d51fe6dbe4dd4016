package session_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"log"

	"gcsup/chunk"
	"gcsup/fakegcs"
	"gcsup/session"
)

// This example sends an object in two requests. A real driver sends the next request
// that Decide returns.
func ExampleClient() {
	srv := fakegcs.NewServer(nil, &fakegcs.Options{CreateBuckets: true})
	defer srv.Close()
	client, err := session.NewClient(srv.Client(), srv.URL)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	data := make([]byte, 300<<10)
	size := int64(len(data))

	uri := client.Start(ctx, session.Spec{Bucket: "my-bucket", Object: "zeros"}, size).URI
	r := client.Put(ctx, uri, chunk.Range{To: chunk.Granularity}, size, bytes.NewReader(data[:chunk.Granularity]))
	fmt.Println(r.Status, r.Committed)
	r = client.Query(ctx, uri)
	fmt.Println(r.Status, r.Committed)
	r = client.Finalize(ctx, uri, chunk.Range{From: r.Committed, To: size}, size, crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)), bytes.NewReader(data[r.Committed:]))
	fmt.Println(r.Status, r.Object.Size)
	fmt.Println(uri)
	// Output:
	// 308 262144
	// 308 262144
	// 200 307200
	// [session URI redacted]
}

// This example calls Decide for an upload of 1 MiB whose first half is
// committed. It needs no clock and no network.
func ExampleDecide() {
	state := session.State{Size: 1 << 20, Committed: 512 << 10, Sent: 512 << 10, Replayable: true}
	for _, reply := range []session.Reply{
		{Op: session.OpPut, Sent: 768 << 10, Status: 503, Committed: -1}, // the committed offset is unknown
		{Op: session.OpQuery, Status: 308, Committed: 768 << 10},         // all sent bytes are committed
		{Op: session.OpFinalize, Sent: 1 << 20, Status: 403, Reason: "forbidden", FromService: true},
	} {
		var action session.Action
		state, action = session.Decide(state, reply)
		fmt.Printf("%s: %d: %s", reply.Op, reply.Status, action.Step)
		if action.Wait {
			fmt.Print(", after a wait")
		}
		if action.Step == session.Fail && errors.Is(action.Err, session.ErrPermission) {
			fmt.Print(", and the object was not made")
		}
		fmt.Printf("; %d bytes are committed\n", state.Committed)
	}
	// Output:
	// put: 503: query, after a wait; 524288 bytes are committed
	// query: 308: send; 786432 bytes are committed
	// finalize: 403: fail, and the object was not made; 786432 bytes are committed
}
