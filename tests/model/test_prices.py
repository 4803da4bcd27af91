"""Prices have a date and a source, and say how old they are; grids say what their electricity emits."""

import datetime

import pytest

from benchmarks.old_prices import old_prices
from starvelab import Q_, Hardware, InputError, UnknownNameError
from starvelab.model.analysis.prices import (
    carbon_intensity,
    grids,
    listed_prices,
    part_prices,
    price_age,
    prices_of,
)
from starvelab.model.catalogue import entry_at
from tests.rejected import message

ALL = (*listed_prices(), *part_prices().values())


@pytest.mark.parametrize(("today", "expected"), [
    ("2026-05-01", "less than a month ago"),
    ("2026-04-30", "less than a month ago"),  # a clock that is wrong
    ("2026-06-30", "1 month ago"),
    ("2027-04-30", "11 months ago"),
    ("2027-05-01", "1 year ago"),
    ("2030-01-01", "3 years ago"),
])  # fmt: skip
def test_a_price_says_how_old_it_is(today, expected):
    (price, *_) = prices_of(Hardware.Cloud.A100)
    assert price.date == datetime.date(2026, 5, 1)
    assert price_age(price.date, datetime.date.fromisoformat(today)) == expected


def test_a_price_of_today_is_asked_for_again_after_a_year():
    newest = max(price.date for price in ALL)
    assert [price.date for price in old_prices(newest)] == []
    assert {price.date for price in old_prices(datetime.date(2027, 6, 1))} == {
        datetime.date(2026, 5, 1), datetime.date(2026, 5, 7)
    }  # fmt: skip
    assert len(old_prices(datetime.date(2030, 1, 1))) == len(ALL)


def test_the_notes_of_parts_give_their_prices():
    found = {name: price.low.m_as("USD/h") for name, price in part_prices().items()}
    assert found["core"] == pytest.approx(2 * 0.012)
    assert found["NVMe_Gen3"] == pytest.approx((3.2256 - 16 * 0.17) / 2)


@pytest.mark.parametrize("path", ["EBS_gp3", "EBS_gp3_max"])
def test_a_volume_delivers_what_its_price_buys(path):
    """1000 GB at 0.08 USD; above 125 MiB/s and 3000 requests/s, 0.04 and 0.005 USD for one more."""
    drive = entry_at("Storage", path)
    throughput, requests = drive.bandwidth_sustained.m_as("MiB/s"), drive.request_rate.m_as("Hz")
    month = 1000 * 0.08 + (throughput - 125) * 0.04 + (requests - 3000) * 0.005
    assert part_prices()[path].low.m_as("USD/h") == pytest.approx(month / 730, rel=1e-4)
    # A volume may have a quarter of a MiB/s for each request a second, and no more.
    assert throughput <= requests / 4


def test_every_price_is_of_what_exists_and_has_a_source_and_a_date():
    for price in ALL:
        kind = "Storage" if price.of in part_prices() else "Hardware"
        assert price.of in ("core", "memory") or entry_at(kind, price.of), price
        assert 0 < price.low.m_as("USD/h") <= price.high.m_as("USD/h"), price
        assert (type(price.date), len(price.source) > 10) == (datetime.date, True), price


def test_an_accelerator_has_the_prices_of_each_seller_and_one_that_was_changed_none():
    sellers = [price.seller for price in prices_of(Hardware.Cloud.H100)]
    assert sellers == ["Nebius", "Lambda", "Modal", "hyperscalers"]
    assert prices_of(Hardware.Cloud.T4) == ()
    assert prices_of(Hardware.Cloud.A100.replace(peak_fp16_dense="1 TFLOP/s")) == ()


def test_a_grid_is_a_country_or_a_carbon_intensity():
    assert carbon_intensity("FRA") == Q_("56 g/kWh")
    assert carbon_intensity("56 g/kWh") == carbon_intensity(Q_("0.056 kg/kWh")) == Q_("56 g/kWh")
    assert carbon_intensity("0 g/kWh").m_as("g/kWh") == 0


def test_every_grid_has_a_source_and_a_year():
    for name, fact in grids().items():
        assert fact.kind == "measured"
        year, file = (
            ("2019", "carbon_intensity_per_source") if name == "world" else ("2023", "global_energy_mix")
        )
        assert year in fact.source
        assert f"{file}.json" in fact.source
        assert 10 < fact.value.m_as("g/kWh") < 1000


@pytest.mark.parametrize(("error", "grid", "expected"), [
    (
        UnknownNameError,
        "France",
        "grid must be a country that the lab lists, or a carbon intensity, got 'France'. There is: "
        'world, USA, DEU, FRA, SWE, GBR, CHN, IND. Or pass for example grid="369 g/kWh".',
    ),
    (InputError, "56 W", "grid must be convertible to g/kWh, got 56 W. Check what it counts."),
    (InputError, "-1 g/kWh",
     "grid must be finite and not negative, got -1 g/kWh. Check the value and its sign."),
    (InputError, 56, 'grid needs a unit, got the bare int 56. Write for example Q_(56, "g/kWh").'),
])  # fmt: skip
def test_what_is_no_grid_is_rejected(error, grid, expected):
    assert message(error, carbon_intensity, grid) == expected
