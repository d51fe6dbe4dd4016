//go:build unix

package main

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gcsup/fleet/internal/fleet"
	"gcsup/fleet/internal/natsserver"
	"gcsup/internal/require"
)

// narrowLink dials connections over which a KiB arrives in 100 ms.
type narrowLink struct{}

func (narrowLink) Dial(network, addr string) (net.Conn, error) {
	c, err := net.Dial(network, addr)
	return narrowConn{c}, err
}

type narrowConn struct{ net.Conn }

func (c narrowConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p[:min(len(p), 1<<10)])
	time.Sleep(100 * time.Millisecond)
	return n, err
}

// TestWaitSlowRecords waits for a fleet whose records take longer to arrive than one request may take.
func TestWaitSlowRecords(t *testing.T) {
	t.Parallel()
	const token = "token"
	server, err := natsserver.Start(natsserver.Options{Dir: t.TempDir(), Port: -1, Token: token})
	require.NoError(t, err)
	t.Cleanup(server.Close)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	near, err := server.Connect()
	require.NoError(t, err)
	defer near.Close()
	_, err = fleet.OpenQueue(ctx, near, fleet.QueueOptions{})
	require.NoError(t, err)
	js, err := jetstream.New(near)
	require.NoError(t, err)
	records, err := js.KeyValue(ctx, "gcsup-default-records")
	require.NoError(t, err)
	put := func(key, record string) {
		_, err := records.PutString(ctx, key, record)
		require.NoError(t, err)
	}
	put("submission-a", `{"v":1,"complete":true}`)
	for i := range 15 {
		put(fmt.Sprint(i), `{"v":1,"state":"done","submission":"`+strings.Repeat("a", 8<<10)+`"}`)
	}
	conn, err := nats.Connect(server.URL(), nats.Token(token), nats.SetCustomDialer(narrowLink{}))
	require.NoError(t, err)
	defer conn.Close()
	q, err := fleet.OpenQueue(ctx, conn, fleet.QueueOptions{MustExist: true})
	require.NoError(t, err)
	l := &link{Queue: q, conn: conn, refused: new(atomic.Pointer[error])}
	std := stdio{t.Output(), t.Output()}
	if err := new(statusFlags).await(ctx, l, newProgress(std, false)); err != nil {
		t.Errorf("the fleet is not settled: %v", err)
	}
}
