package cmdline

import (
	"testing"
	"testing/synctest"

	"github.com/spf13/pflag"

	"gcsup/internal/require"
	"gcsup/upload"
)

func TestRequestRateValues(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"500", "500"}, {"500/s", "500"}, {"1", "1"}, {"2.5", "2.5"}, {"1e3", "1000"}, {"off", "off"}, {"OFF", "off"},
		{"0", "error"}, {"0.5", "error"}, {"-1", "error"}, {"NaN", "error"}, {"inf", "error"}, {"1e300", "error"}, {"", "error"}, {"fast", "error"}, {"5/m", "error"},
	} {
		var f SendFlags
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		f.Add(fs)
		got := "error"
		if err := fs.Set("request-rate", test.text); err == nil {
			got = fs.Lookup("request-rate").Value.String()
		}
		if got != test.want {
			t.Errorf("--request-rate %q: %s, want %s", test.text, got, test.want)
		}
	}
}

func TestRequestRateOption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for text, want := range map[string]float64{"": 0, "off": 0, "300": 300} {
			var f SendFlags
			fs := pflag.NewFlagSet("", pflag.ContinueOnError)
			f.Add(fs)
			if text != "" {
				require.NoError(t, fs.Set("request-rate", text))
			}
			o, err := f.Options()
			require.NoError(t, err)
			if (o.RequestRates == upload.NoRequestRates) != (text == "off") {
				t.Errorf("%q: pacing is off or on by mistake", text)
			}
			o.RequestRates.Set("b", 1000)
			for _, rate := range o.RequestRates.All() {
				if limited := rate.PerSecond(); want > 0 && limited != want {
					t.Errorf("%q: %v per second, want %v", text, limited, want)
				}
			}
		}
	})
}
