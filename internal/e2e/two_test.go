//go:build unix

package e2e_test

import (
	"flag"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"gcsup/internal/testsize"
)

var (
	pairs    = flag.Int("pairs", testsize.Full(4, 1), "how often one saved upload is used on two machines at once")
	pairSeed = flag.Uint64("pair-seed", 0, "of the pairs; 0 takes that of testsize.Seed")
)

// TestTwoMachines copies a saved upload to a second state directory, and resumes both copies at the same time. It checks
// that there is one complete object, and that the other process reports why it failed.
func TestTwoMachines(t *testing.T) {
	t.Parallel()
	k := newKilling(t, *pairs, *pairSeed)
	outcomes := map[string]int{}
	for k.files < *pairs && !t.Failed() {
		o := k.target(9*mib+k.random.Int64N(8*mib), "--rate", "16MiB")
		chunk := func() []string { return pick(k.random, nil, []string{"--chunk-size=1MiB"}) }
		aim, flags := k.random.Int64N(6*mib)+mib|1, chunk()
		o.hold(aim, int64(len(flags))*mib)
		begun := o.begin(flags...)
		if !o.reaches(begun, aim) {
			t.Fatal(begun.output())
		}
		begun.kill()
		o.release()
		second := filepath.Join(o.root, "second")
		if out, err := exec.Command("cp", "-Rp", o.state, second).CombinedOutput(); err != nil {
			t.Fatalf("%s%v", out, err)
		}
		one := o.begin(chunk()...)
		k.random.pause(300 * time.Millisecond)
		o.state = second
		two := o.begin(chunk()...)
		done, sessions := 0, 1
		for _, c := range []*child{one, two} {
			code, kind := c.Wait(), c.result().kind()
			if code == 0 {
				done++
				if c.result().BytesSent == 0 {
					kind = "already finished"
				}
			}
			outcomes[kind]++
			if kind != "ok" && kind != "already finished" && kind != "unexpected_data" {
				t.Errorf("unexpected end: %s", c.output())
			}
		}
		if _, made := o.objects("demo")["x"]; made != (done > 0) {
			t.Errorf("%d succeeded, and the object exists: %v\n%s\n%s", done, made, one.output(), two.output())
		}
		if done == 0 { // both failed; a single process must succeed now
			outcomes["neither"]++
			sessions++
			if again := o.begin(chunk()...); again.Wait() != 0 {
				t.Errorf("alone: %s", again.output())
			}
		}
		o.complete(map[string]string{"x": o.path})
		if n := account(t, o.emulator.requests(), nil).sessions; n > sessions {
			t.Errorf("%d sessions, want at most %d", n, sessions)
		}
	}
	t.Logf("%d pairs: %v", k.files, outcomes)
}
