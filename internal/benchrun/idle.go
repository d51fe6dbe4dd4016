package benchrun

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// busyMean and busyMost are the shares of the processors' time between the runs, on
// average and in one pause, above which the machine is not idle. stolenMost is the
// share that the hypervisor may take during the comparison.
const (
	busyMean   = 0.05
	busyMost   = 0.25
	stolenMost = 0.01
)

// idleness records how busy the machine is while no run is in progress.
type idleness struct {
	first, last cpuTimes  // before the first and after the last pause
	busy        []float64 // share of each pause
	err         error
}

// wait waits for d, and records the use of the processors.
func (i *idleness) wait(d time.Duration) {
	before, err := readCPUTimes()
	time.Sleep(d)
	after, err2 := readCPUTimes()
	if i.err = errors.Join(i.err, err, err2); i.err != nil {
		return
	}
	if len(i.busy) == 0 {
		i.first = before
	}
	i.last = after
	i.busy = append(i.busy, share(after.busy-before.busy, after.total-before.total))
}

// String reports whether the machine was idle.
func (i *idleness) String() string {
	if i.err != nil {
		return fmt.Sprintf("It is not known whether the machine was idle: %v", i.err)
	}
	return verdict(i.busy, share(i.last.stolen-i.first.stolen, i.last.total-i.first.total))
}

// verdict reports whether a machine is idle whose processors were busy for these shares
// of the pauses.
func verdict(busy []float64, stolen float64) string {
	var sum, most float64
	for _, b := range busy {
		sum += b
		most = max(most, b)
	}
	mean := sum / float64(len(busy))
	text := fmt.Sprintf("between the runs the processors were busy for %.0f %% of the time, at most %.0f %%; the hypervisor took %.1f %%",
		100*mean, 100*most, 100*stolen)
	if mean > busyMean || most > busyMost || stolen > stolenMost {
		return "THE MACHINE IS NOT IDLE, do not rely on these figures: " + text
	}
	return "The machine was idle: " + text
}

// cpuTimes is the time of all processors since the start of the machine, in ticks.
type cpuTimes struct {
	busy   uint64 // stolen included
	stolen uint64 // by the hypervisor
	total  uint64
}

func readCPUTimes() (cpuTimes, error) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return cpuTimes{}, err
	}
	return parseStat(string(stat))
}

// parseStat parses the first line of /proc/stat: user, nice, system, idle, iowait, irq,
// softirq, steal, and two that user and nice include.
// https://man7.org/linux/man-pages/man5/proc_stat.5.html
func parseStat(stat string) (cpuTimes, error) {
	var user, nice, system, idle, iowait, irq, softirq, steal uint64
	if _, err := fmt.Sscanf(stat, "cpu %d %d %d %d %d %d %d %d", &user, &nice, &system, &idle, &iowait, &irq, &softirq, &steal); err != nil {
		return cpuTimes{}, fmt.Errorf("/proc/stat: %w", err)
	}
	busy := user + nice + system + irq + softirq + steal
	return cpuTimes{busy: busy, stolen: steal, total: busy + idle + iowait}, nil
}

// share returns part as a share of whole, and 0 if no time has passed.
func share(part, whole uint64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}
