//go:build unix

package e2e_test

import (
	"flag"
	"testing"
	"time"

	"gcsup/fakegcs/faults"
	"gcsup/internal/testsize"
)

var autoKills = flag.Int("auto-kills", testsize.Full(8, 4), "how many processes that send a large file by default flags to kill")

const (
	// discardMost is the most that --parallel=auto discards of a session that shows a slow connection.
	discardMost = 16 * mib

	// certainTime is how long a client sends before it must have committed something.
	certainTime = 5 * time.Second
)

// autoLink is a link to the emulator.
type autoLink struct {
	flags []string      // of the emulator
	span  time.Duration // see target
	most  int64         // bytes that a killed client may have sent in vain; 0 is no limit
}

// autoLinks are the links. A fast one may have more bytes under way. Over the one without flags, a
// single connection is fast enough. Over the last ones, a file takes up to a minute: they are for many kills.
var autoLinks = []autoLink{
	{flags: []string{"--rate", "32MiB", "--latency", "20ms"}, span: 3 * time.Second},
	{flags: []string{"--total-rate", "40MiB", "--latency", "20ms"}, span: 4 * time.Second},
	{},
	{flags: []string{"--rate", "4MiB"}, span: 6 * time.Second},
	{flags: []string{"--total-rate", "10MiB"}, span: 12 * time.Second, most: 128 * mib},
}

const slowLinks = 2 // at the end of autoLinks

// TestAutoPartsKilled kills clients that send a file of about 200 MiB with the default of --parallel, and the
// emulator. The links limit each connection, all together, or nothing. Some of the next clients, and each fourth
// first one, have another --parallel. It checks that each client that sent for some seconds committed something.
//
//	go test ./internal/e2e -run AutoPartsKilled -auto-kills 100 -kill-seed 7 -v
func TestAutoPartsKilled(t *testing.T) {
	t.Parallel()
	k := newKilling(t, *autoKills, *killSeed)
	links := autoLinks
	if *autoKills < 20 {
		links = links[:len(links)-slowLinks]
	}
	var divided, undivided int // of the finished uploads
	var v vain
	for k.more() {
		link, compose := pick(k.random, links...), k.random.oneIn(3)
		o := k.target(152*mib+k.random.Int64N(56*mib), link.flags...)
		o.span = link.span
		last := o.upload(2+k.random.IntN(6), []moment{byTime, byTime, byTime, byBytes, byBytes, inSave, ofServer}, func() (flags []string) {
			if compose {
				flags = []string{"--parallel-by", "compose"}
			}
			switch n, first := k.random.IntN(6), len(o.clients) == 0; {
			case first && k.files%4 == 0, !first && n < 2:
				flags = append(flags, "--parallel", "off")
			case !first && n == 2:
				flags = append(flags, "--parallel", "3")
			}
			return flags
		})
		switch {
		case last == nil:
		case last.result().Parallel != nil:
			divided++
		default:
			undivided++
		}
		o.finish()
		for i, c := range o.clients {
			if !c.killed.IsZero() {
				v.check(o, i, link)
			}
		}
	}
	t.Log(k)
	t.Logf("of the finished uploads, %d in parts and %d over one connection; most bytes received of a killed client and not committed: %d; clients killed before a byte was committed: %d, after at most %v",
		divided, undivided, v.risked, v.useless, v.longest.Round(time.Millisecond))
	if k.discarded > discardMost {
		t.Errorf("%d bytes of a session were discarded to divide a file, want at most %d", k.discarded, discardMost)
	}
}

// vain describes what killed clients sent in vain.
type vain struct {
	risked  int64         // the most bytes that the service received of a client and did not keep
	useless int           // clients without a committed byte
	longest time.Duration // for which one of these sent
}

// check checks what the service has of the bytes of a client.
func (v *vain) check(o *target, client int, link autoLink) {
	o.t.Helper()
	c := o.clients[client]
	var first time.Time
	var arrived, kept int64
	for _, r := range o.requests {
		if r.Time.Before(c.began) || client+1 < len(o.clients) && !r.Time.Before(o.clients[client+1].began) {
			continue
		}
		if r.Op != faults.OpPut && r.Op != faults.OpFinalize && r.Op != faults.OpPartsPut || r.Received == 0 {
			continue
		}
		if arrived += r.Received; first.IsZero() {
			first = r.Time
		}
		switch {
		case r.Op != faults.OpPartsPut:
			kept += r.Received - r.Received%(256<<10)
		case r.Status == 200:
			kept += r.Received
		}
	}
	v.risked = max(v.risked, arrived-kept)
	if link.most > 0 && arrived-kept > link.most {
		o.t.Errorf("a killed client over %q had sent %d bytes that were not committed, want at most %d", link.flags, arrived-kept, link.most)
	}
	if kept > 0 || arrived == 0 {
		return
	}
	sent := c.killed.Sub(first)
	v.useless++
	v.longest = max(v.longest, sent)
	if sent > certainTime {
		o.t.Errorf("a client sent %d bytes in %v over %q, and committed none", arrived, sent, link.flags)
	}
}
