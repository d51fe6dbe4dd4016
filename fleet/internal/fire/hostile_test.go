//go:build linux

package fire_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	fleetqueue "gcsup/fleet/internal/fleet"

	"gcsup/internal/require"
)

// hostile is a worker that was taken over. It can publish what it has read, and what it has made up, but has no key that
// the others accept.
type hostile struct {
	tasks    map[string][]byte // signed messages, by their subjects
	settings []byte            // signed, and older than the present ones, with a limit that would stop the fleet
	replayed time.Time         // when the settings were published again
	warned   map[int]bool      // the processes of workers that had seen newer ones, by their PIDs
}

// connect connects to NATS like a worker.
func (f *fire) connect() (*nats.Conn, error) {
	return nats.Connect(f.cluster.urls(), nats.Timeout(time.Second), nats.MaxReconnects(1))
}

// eavesdrop reads what the submitter has signed.
func (f *fire) eavesdrop() {
	f.t.Helper()
	f.insist("limit", "1KiB")
	nc, err := f.connect()
	require.NoError(f.t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	require.NoError(f.t, err)
	control, err := js.KeyValue(f.t.Context(), "gcsup-default-control")
	require.NoError(f.t, err)
	entry, err := control.Get(f.t.Context(), "settings")
	require.NoError(f.t, err)
	f.hostile.settings, f.hostile.tasks = entry.Value(), map[string][]byte{}
	f.insist("limit", "off")
	stream, err := js.Stream(f.t.Context(), "gcsup-default")
	require.NoError(f.t, err)
	for seq := stream.CachedInfo().State.FirstSeq; seq <= stream.CachedInfo().State.LastSeq; seq++ {
		msg, err := stream.GetMsg(f.t.Context(), seq)
		require.NoError(f.t, err)
		f.hostile.tasks[msg.Subject] = msg.Data
	}
}

// forge puts two tasks into the queue that the submitter has not signed: one that was changed, and one with the signature of
// another key.
func (f *fire) forge() {
	f.t.Helper()
	var task fleetqueue.Task
	for _, message := range f.hostile.tasks {
		require.NoError(f.t, json.Unmarshal(message, &task))
	}
	const changed, other = "forged/changed", "forged/other-key"
	task.Files = task.Files[:1]
	task.Files[0].Object = changed
	data, err := json.Marshal(&task)
	require.NoError(f.t, err)
	require.NoError(f.t, f.publish(map[string][]byte{"gcsup.default.task3." + task.ID(): data}))
	dir := filepath.Join(f.dir, "other-keys")
	require.NoError(f.t, os.Mkdir(dir, 0o700))
	args := append([]string{"submit", task.Files[0].Path, "gs://data/" + other}, f.queueFlags()...)
	if _, err := result(startIn(f.t.T, f.shared(), nil, append(service(f.emulator.addr), writeKeys(f.t.T, dir)...), gcsupFleet, args...)); err != nil {
		f.t.Fatal(err)
	}
	f.bad[changed], f.bad[other] = badFile{kind: "signature"}, badFile{kind: "signature"}
}

// publish publishes messages, which the server may refuse.
func (f *fire) publish(messages map[string][]byte) error {
	nc, err := f.connect()
	if err != nil {
		return err
	}
	defer nc.Close()
	for subject, data := range messages {
		if err := nc.Publish(subject, data); err != nil {
			return err
		}
	}
	return nc.FlushTimeout(time.Second)
}

// replayAll publishes the signed tasks and the old settings again, if NATS can be reached. A worker that starts later has
// seen no newer settings, and obeys.
func (f *fire) replayAll() {
	f.hostile.warned = map[int]bool{}
	for _, s := range f.slots {
		if s.worker != nil && s.worker.Alive() && strings.Contains(s.worker.Stderr(), "task begins") {
			f.hostile.warned[s.worker.PID()] = true
		}
	}
	f.hostile.replayed = time.Now()
	err := f.publish(map[string][]byte{"$KV.gcsup-default-control.settings": f.hostile.settings})
	if err == nil {
		err = f.publish(f.hostile.tasks)
	}
	if err != nil {
		f.tell(fmt.Sprintf("not all of them: %v", err))
	}
}

// checkRefused checks that no worker obeys old settings that has seen newer ones. Then the operator corrects them.
func (f *fire) checkRefused() {
	f.t.Helper()
	if f.hostile.warned == nil {
		return
	}
	await(time.Until(f.hostile.replayed.Add(6*time.Second)), func() bool { // three beats
		f.supervise()
		return false
	})
	var s status
	var err error
	if !poll(500*time.Millisecond, time.Minute, func() bool { s, err = f.status(); return err == nil }) {
		f.t.Error(err)
	}
	for _, w := range s.Workers {
		if f.hostile.warned[w.PID] && w.RateLimit > 0 {
			f.t.Errorf("worker %d obeys old settings: it sends at most %d bytes/s", w.PID, w.RateLimit)
		}
	}
	f.insist("limit", "off")
}

// replayFinished publishes the tasks of good files again. Their objects must not be made again.
func (f *fire) replayFinished() {
	f.t.Helper()
	if f.hostile.tasks == nil {
		return // there is no hostile worker
	}
	again := map[string][]byte{}
	for subject, message := range f.hostile.tasks {
		var task fleetqueue.Task
		require.NoError(f.t, json.Unmarshal(message, &task))
		good := true
		for _, file := range task.Files {
			_, bad := f.bad[file.Object]
			good = good && !bad
		}
		if good {
			again[subject] = message
		}
	}
	if err := f.publish(again); err != nil {
		f.t.Error(err)
	}
	f.tell(fmt.Sprintf("hostile: %d finished tasks again", len(again)))
}

// hang blocks the next read of each large file by a worker that sends, until all files are uploaded.
func (f *fire) hang() {
	f.t.Helper()
	s := f.busiest()
	paths, err := filepath.Glob(filepath.Join(f.tree(), "large", "*"))
	require.NoError(f.t, err)
	var pid atomic.Int64
	pid.Store(int64(s.worker.PID()))
	release, err := blockReads(f.t.T, &pid, paths...)
	if err != nil {
		f.tell(fmt.Sprintf("reads cannot be blocked: %v", err))
		return
	}
	f.tell(fmt.Sprintf("it is machine %d", s.number))
	f.hung = append(f.hung, release)
}
