package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"gcsup/internal/cli/readable"
	"gcsup/internal/cli/screen"
	"gcsup/upload/outbox"
)

// notifier tells systemd how the outbox is. Without systemd it does nothing.
// https://www.freedesktop.org/software/systemd/man/latest/sd_notify.html
type notifier struct {
	console  *screen.Console
	watchdog time.Duration // how often systemd wants a sign of life; 0 if it wants none
	warn     sync.Once
}

// statusEvery is how often the text in systemctl status changes.
const statusEvery = 5 * time.Second

func newNotifier(con *screen.Console) *notifier {
	n := &notifier{console: con}
	watchdog, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		con.Warning("warning: systemd's watchdog: %v", err)
	}
	n.watchdog = watchdog
	return n
}

// send sends a state to systemd.
func (n *notifier) send(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		n.warn.Do(func() { n.console.Warning("warning: systemd gets no notifications: %v", err) })
	}
}

func (n *notifier) ready() { n.send(daemon.SdNotifyReady) }

// start sends the status of the outbox, and signs of life, until stop is called. When ctx is done it sends that
// the service is stopping. There is no sign of life while the outbox hangs.
func (n *notifier) start(ctx context.Context, status func() outbox.Status) (stop func()) {
	every := statusEvery
	if n.watchdog > 0 {
		every = min(every, n.watchdog/3)
	}
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		stopping := ctx.Done()
		for {
			select {
			case <-tick.C:
				s := status()
				state := "STATUS=" + outboxText(s)
				if n.watchdog > 0 && (s.Turn.IsZero() || time.Since(s.Turn) < n.watchdog) {
					state = daemon.SdNotifyWatchdog + "\n" + state
				}
				n.send(state)
			case <-stopping:
				stopping = nil
				n.stopping()
			case <-done:
				if stopping != nil && ctx.Err() != nil { // the outbox stopped at once
					n.stopping()
				}
				return
			}
		}
	})
	return sync.OnceFunc(func() {
		close(done)
		running.Wait()
	})
}

func (n *notifier) stopping() { n.send(daemon.SdNotifyStopping + "\nSTATUS=stopping") }

// outboxText describes an outbox on one line.
func outboxText(s outbox.Status) string {
	text := fmt.Sprintf("%s uploaded; backlog: %s, %s", readable.Plural(int(s.Uploaded.Files), "file", "files"), readable.Plural(int(s.Backlog.Files), "file", "files"), readable.Bytes(s.Backlog.Bytes))
	if s.Uploading > 0 {
		text += fmt.Sprintf("; %d under way", s.Uploading)
	}
	if s.Waiting > 0 {
		text += fmt.Sprintf("; %d failed and wait", s.Waiting)
	}
	return text
}
