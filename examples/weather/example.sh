# What the runner does besides; see examples/run.
# shellcheck shell=bash disable=SC2034,SC2154
show=(service.log weather.txt)

# Functions inherit the environment of their worker.
prepare() {
  : >"$directory/weather-url"
  start "$example/service.py" >"$directory/weather-url"
  WEATHER_URL=$(first_line "$directory/weather-url" $!)
  export WEATHER_URL
}
