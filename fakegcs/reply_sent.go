package fakegcs

import (
	"net"
	"syscall"
	"time"
)

// longestSend limits how long a reset waits for a peer that receives nothing. A peer that does not
// read never receives all of a long reply.
const longestSend = time.Second

// awaitSent waits until the peer has received what was written to conn, because a reset
// discards the rest. On systems that do not report it, it returns at once.
func awaitSent(conn net.Conn) {
	switch c := conn.(type) {
	case interface{ AwaitRead(time.Duration) }: // of package memnet
		c.AwaitRead(longestSend)
	case syscall.Conn:
		raw, err := c.SyscallConn()
		if err != nil {
			return
		}
		left, until := unacknowledged(raw), time.Now().Add(longestSend)
		for left > 0 && time.Now().Before(until) {
			time.Sleep(time.Millisecond)
			if now := unacknowledged(raw); now < left {
				left, until = now, time.Now().Add(longestSend)
			}
		}
	}
}
